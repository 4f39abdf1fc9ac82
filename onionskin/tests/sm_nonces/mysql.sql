CREATE TABLE `old` (
  `id` int NOT NULL,
  `n$enc` varbinary(39) DEFAULT NULL COMMENT 'onionskin:1|524a2e6298fb658625eb8b6117db6b81|c9ab6bfd|5d9b02d71089efba|1|2|range|int|int||||||10|0||null|',
  `n$ord_c9ab` binary(16) DEFAULT NULL INVISIBLE,
  `name$enc` varbinary(115) DEFAULT NULL COMMENT 'onionskin:1|2998dd742a43e70f0ca96882adf06844|9715a4e7|5d9b02d71089efba|1|2|eq|varchar|varchar(20)|utf8mb4|utf8mb4_general_ci||20|80||||null|',
  `name$eq_9715` binary(16) DEFAULT NULL INVISIBLE,
  `note$enc` mediumblob COMMENT 'onionskin:1|c906b2b135706c0b2d57de8299150c1e|7e338a63|5d9b02d71089efba|1|2||text|text|utf8mb4|utf8mb4_general_ci||65535|65535||||null|',
  PRIMARY KEY (`id`),
  CONSTRAINT `onionskin_5d9b02d71089efba_7e338a63` CHECK (((length(`note$enc`) >= 35) and (substr(`note$enc`,1,1) = 0x12) and (substr(`note$enc`,4,4) = 0x7e338a63))),
  CONSTRAINT `onionskin_5d9b02d71089efba_9715a4e7` CHECK (((length(`name$enc`) >= 35) and (substr(`name$enc`,1,1) = 0x12) and (substr(`name$enc`,4,4) = 0x9715a4e7) and ((`name$enc` is null) = (`name$eq_9715` is null)))),
  CONSTRAINT `onionskin_5d9b02d71089efba_c9ab6bfd` CHECK (((length(`n$enc`) >= 35) and (substr(`n$enc`,1,1) = 0x12) and (substr(`n$enc`,4,4) = 0xc9ab6bfd) and ((`n$enc` is null) = (`n$ord_c9ab` is null))))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO old (`id`, `n$enc`, `n$ord_c9ab`, `name$enc`, `name$eq_9715`, `note$enc`) VALUES
  (1,
   0x120001C9AB6BFD9EE57A56FF5EA808B163E71ECFE2B6D3320115E5A5490CD772620B7E604E61D1,
   0xCF0549926F7737844C66415FC3E39183,
   0x1200019715A4E7B957C3C640504E83757538F52EA08814901E6B9513131F7A57D90EAAB8A6498527,
   0xDF1844A0CA9068A62DE0A15835929040,
   0x1200017E338A63DC203A8C705AA3B14E7414EEEDD6CAD0B1830A499EEB8C2F0B01D158542813B5C2);
INSERT INTO old (`id`, `n$enc`, `n$ord_c9ab`, `name$enc`, `name$eq_9715`, `note$enc`) VALUES
  (2,
   0x120001C9AB6BFD50B4230F4637F0A3143B4340C668D7E7D43B7DA73F8A613C153B6B6DEFA5B441,
   0xCF0549926F7737844C66415FC3E44040,
   0x1200019715A4E7DC1A5E7985A152026E8C98E2267581D616DC5E9BFC9903F1B021A4652D51AA,
   0xDBEDC31C4B6A3CE58A1C8F03A61196DB,
   NULL);
INSERT INTO old (`id`, `n$enc`, `n$ord_c9ab`, `name$enc`, `name$eq_9715`, `note$enc`) VALUES
  (3,
   NULL,
   NULL,
   NULL,
   NULL,
   0x1200017E338A6354E6EF7900FF47C132E327B48F23116B78D37758CB66D3D3C3EC3F10531098066B1A8A38CE0E7F3A78D5F98A661D163F578C095A14053BC61089C026BE1501379EBB);
